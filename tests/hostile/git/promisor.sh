#!/bin/bash
# class: git
# title: a partial clone whose promisor runs a program
# expects: safe
git config remote.p.url "ext::$TRAP"; git config remote.p.promisor true; git config remote.p.partialCloneFilter blob:none; git config extensions.partialClone p; git config protocol.ext.allow always; echo x > new
