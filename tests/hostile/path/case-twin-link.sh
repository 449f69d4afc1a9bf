#!/bin/bash
# class: path
# title: a link whose name differs by case from a directory
# expects: refused
ln -s /etc Dir; git add Dir
