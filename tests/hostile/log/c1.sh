#!/bin/bash
# class: log
# title: control sequences of one byte, raw and in UTF-8
# expects: safe
printf 'x\n\302\2332J\302\2350;INJECTED\302\234\302\220q\302\234\n\2332J\2350;INJECTED\234\n'
