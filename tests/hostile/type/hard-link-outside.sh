#!/bin/bash
# class: type
# title: a hard link to a file outside of the repository
# expects: safe
# kept: hard
echo x > /sandbox/other-file; ln /sandbox/other-file hard
