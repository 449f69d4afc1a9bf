#!/bin/bash
# class: log
# title: a last line without an end
# expects: safe
printf 'x\n::error::INJECTED'
