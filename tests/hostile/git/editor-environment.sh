#!/bin/bash
# class: git
# title: trace files that the configuration names
# expects: safe
git config trace2.normalTarget "$MARKER"; git config trace2.eventTarget "$MARKER"; git config trace2.perfTarget "$MARKER"; echo x > new
