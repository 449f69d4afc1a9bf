#!/bin/bash
# class: git
# title: a trailer command and a tar filter
# expects: safe
git config trailer.x.command "$TRAP"; git config trailer.x.cmd "$TRAP"; git config tar.x.command "$TRAP"; git config uploadpack.packObjectsHook "$TRAP"; echo x > new
