#!/bin/bash
# class: name
# title: encoded line breaks in a name
# expects: safe
# kept: fine
echo 1 > 'x%0A::error::INJECTED'; echo 1 > '%0d%0a##[error]INJECTED'; echo 1 > fine
