#!/bin/bash
# class: log
# title: commands behind a carriage return and other ends of lines
# expects: safe
printf 'x\r::error::INJECTED\ny\013::error::INJECTED\nz\014::error::INJECTED\n\302\205::error::INJECTED\n\342\200\250::error::INJECTED\n\342\200\251::error::INJECTED\n\036::error::INJECTED\n'
