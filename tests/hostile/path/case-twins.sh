#!/bin/bash
# class: path
# title: two names that differ by case
# expects: refused
echo 1 > Twin; echo 2 > tWIN
