#!/bin/bash
# class: path
# title: a name that differs by case from a file of the host
# expects: refused
echo evil > A
