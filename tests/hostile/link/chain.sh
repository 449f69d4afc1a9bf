#!/bin/bash
# class: link
# title: two links that together climb out
# expects: safe
# gone: hop
ln -s dir/.. one; ln -s one/../../outside/file hop; git add one hop
