#!/bin/bash
# class: git
# title: .git is deleted
# expects: safe
# kept: new
rm -rf .git; echo x > new
