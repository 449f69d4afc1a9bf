#!/bin/bash
# class: git
# title: remote.*.uploadpack and receivepack
# expects: safe
git config remote.origin.uploadpack "$TRAP"; git config remote.origin.receivepack "$TRAP"; git config remote.origin.vcs evil; echo x > new
