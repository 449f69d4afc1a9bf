#!/bin/bash
# class: link
# title: a tracked link of the host is turned outside
# expects: safe
# kept: link
ln -sfn "$OUTSIDE/file" link; git add -A
