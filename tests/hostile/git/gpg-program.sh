#!/bin/bash
# class: git
# title: gpg.program with commit.gpgSign
# expects: safe
echo x > new; git commit -q --allow-empty -m x
git config commit.gpgSign true; git config tag.gpgSign true; git config gpg.program "$TRAP"; git config gpg.ssh.program "$TRAP"; git config gpg.x509.program "$TRAP"; git config log.showSignature true
