#!/bin/bash
# class: path
# title: an index entry below .git
# expects: refused
blob=$(echo evil | git hash-object -w --stdin)
git update-index --add --cacheinfo "100644,$blob,zgit/config"
perl -0pi -e 's/zgit\/config/.git\/config/' .git/index
perl -e 'use Digest::SHA qw(sha1); local $/; open F,"<:raw",".git/index"; $_=<F>; close F; $_=substr($_,0,-20); open F,">:raw",".git/index"; print F $_.sha1($_)'
echo x > new
