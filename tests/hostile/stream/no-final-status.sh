#!/bin/bash
# class: stream
# title: exit status 0 after half a stream
# expects: failed
echo '{"type":"system","subtype":"init"}'; echo '{"type":"assistant","message":{"id":"1","content":[]}}'
