#!/bin/bash
# class: git
# title: configuration that changes what a push does
# expects: safe
git config push.default matching; git config remote.origin.push '+refs/*:refs/*'; git config remote.origin.mirror true; git config push.followTags true; git config push.recurseSubmodules on-demand; echo x > new
