#!/bin/bash
# class: git
# title: workflow commands in commit messages, authors and tags
# expects: safe
git -c user.name="$(printf '::error::INJECTED')" commit -q --allow-empty -m "$(printf '::add-mask::INJECTED\n::stop-commands::INJECTED\n##[group]INJECTED')"
git tag -a -m '::warning::INJECTED' v1; echo x > new
