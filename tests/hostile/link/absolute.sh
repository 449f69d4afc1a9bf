#!/bin/bash
# class: link
# title: an absolute link to a file outside
# expects: safe
# gone: abs
# says: abs
ln -s "$OUTSIDE/file" abs; ln -s /etc/passwd passwd; git add abs
