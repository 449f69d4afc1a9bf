#!/bin/bash
# class: git
# title: gpg.ssh.defaultKeyCommand
# expects: safe
echo x > new; git config gpg.format ssh; git config commit.gpgSign true; git config gpg.ssh.defaultKeyCommand "$TRAP"
