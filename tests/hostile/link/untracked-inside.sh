#!/bin/bash
# class: link
# title: a link that stays inside but that git does not track
# expects: safe
# kept: loose
ln -s a loose
