#!/bin/bash
# class: path
# title: a name that differs by a trailing dot
# expects: refused
echo evil > 'a.'
