#!/bin/bash
# class: log
# title: backspaces and deletes
# expects: safe
printf 'safe\010\010\010\010::error::INJECTED\n\177\177::error::INJECTED\n\007\n'
