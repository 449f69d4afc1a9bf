#!/bin/bash
# class: redaction
# title: in an author's name
# expects: secret
git -c user.name="A $(printf "%s" "$KEY" | sed -n 2p)" commit -q --allow-empty -m x
