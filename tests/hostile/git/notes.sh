#!/bin/bash
# class: git
# title: notes, stashes, remote and odd refs
# expects: safe
# kept: new
echo x > new; for r in refs/notes/commits refs/stash refs/remotes/origin/main refs/pull/1/head refs/original/x refs/bisect/bad; do git update-ref $r HEAD; done
