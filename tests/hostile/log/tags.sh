#!/bin/bash
# class: log
# title: characters of the tag block and variation selectors
# expects: safe
printf 'x\n\363\240\201\201\363\240\201\202 hidden\n\357\270\200\n\363\240\204\200x\n'
