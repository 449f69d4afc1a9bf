#!/bin/bash
# class: type
# title: a device, where the sandbox may make one
# expects: safe
# gone: null
# kept: fine
mknod null c 1 3 2>/dev/null || true; echo 1 > fine
