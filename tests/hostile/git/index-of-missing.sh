#!/bin/bash
# class: git
# title: an index entry whose object does not exist
# expects: refused
git update-index --add --cacheinfo 100644,1111111111111111111111111111111111111111,evil; echo x > new
