#!/bin/bash
# class: log
# title: sections of GitLab
# expects: safe
printf 'x\n\033[0Ksection_start:1700000000:fullsend_1\r\033[0KINJECTED\n\033[0Ksection_end:1700000000:fullsend_1\r\033[0K\nsection_start:1:INJECTED[collapsed=true]\r\n'
