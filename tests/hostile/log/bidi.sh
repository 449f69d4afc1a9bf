#!/bin/bash
# class: log
# title: direction overrides and isolates (CVE-2021-42574)
# expects: safe
printf 'x\n\342\200\256INJECTED\342\200\254\n\342\201\246x\342\201\251\n\330\234x\n'
