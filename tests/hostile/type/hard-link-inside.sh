#!/bin/bash
# class: type
# title: a hard link between two files
# expects: safe
# kept: twin
ln a twin; echo more >> twin
