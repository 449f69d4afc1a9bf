#!/bin/bash
# class: git
# title: core.gitProxy and http.proxy
# expects: safe
git config core.gitProxy "$TRAP"; git config http.proxy http://localhost:1; git config remote.origin.proxy http://localhost:1; echo x > new
