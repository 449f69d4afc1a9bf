#!/bin/bash
# class: log
# title: a control string that never ends
# expects: safe
printf 'x\n\033]0;never ended ::error::INJECTED\n::error::INJECTED\n\033P never ended\n\033[\n\033'
