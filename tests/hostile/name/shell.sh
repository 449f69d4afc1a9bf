#!/bin/bash
# class: name
# title: names that a shell would run
# expects: safe
# kept: fine
echo 1 > '$(touch marker)'; echo 1 > '`touch marker`'; echo 1 > '; touch marker'; echo 1 > '|touch marker'; echo 1 > '..;x'; echo 1 > fine
