#!/bin/bash
# class: log
# title: sections of GitLab that come together once something is removed
# expects: safe
printf 'x\nsection_\033[0mstart:1:INJECTED\nsection_\342\200\213start:1:INJECTED\nsection_start\000:1:INJECTED\nsection_section_start:start:1:INJECTED\n'
