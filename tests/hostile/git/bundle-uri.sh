#!/bin/bash
# class: git
# title: bundles and background maintenance
# expects: safe
git config fetch.bundleURI "$OUTSIDE/x"; git config maintenance.auto true; git config gc.auto 1; git config gc.recentObjectsHook "$TRAP"; git config maintenance.strategy incremental; echo x > new
