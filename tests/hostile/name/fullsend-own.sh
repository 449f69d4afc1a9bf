#!/bin/bash
# class: name
# title: names that the runner uses itself
# expects: safe
# kept: fine
mkdir -p output agent-input; echo 1 > output/x; echo 1 > run.json; echo 1 > .env; echo 1 > '.repo.fullsend-x'; echo 1 > fine
