#!/bin/bash
# class: log
# title: commands behind space, tabs and characters that do not show
# expects: safe
printf 'x\n   ::error::INJECTED\n\t::error::INJECTED\n\342\200\213::error::INJECTED\n\357\273\277::error::INJECTED\n\302\240::error::INJECTED\n\343\200\200::error::INJECTED\n'
