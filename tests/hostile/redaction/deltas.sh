#!/bin/bash
# class: redaction
# title: split over the deltas of a stream
# expects: safe
printf '{"type":"system","subtype":"init"}\n{"type":"stream_event","event":{"type":"message_start","message":{"id":"m1"}}}\n{"type":"stream_event","event":{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}}\n'
printf '%s' "$KEY" | sed -n 2p | fold -w 5 | while read -r p || [ -n "$p" ]; do printf '{"type":"stream_event","event":{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"%s"}}}\n' "$p"; done
printf '{"type":"stream_event","event":{"type":"content_block_stop","index":0}}\n{"type":"result","subtype":"success","is_error":false,"result":"done"}\n'
