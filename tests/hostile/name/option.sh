#!/bin/bash
# class: name
# title: names that look like options
# expects: safe
# kept: -rf
# kept: --upload-pack=touch
echo 1 > ./-rf; echo 1 > './--upload-pack=touch'; echo 1 > './-e sh'; echo 1 > '-'
