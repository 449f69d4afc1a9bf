#!/bin/bash
# class: type
# title: a socket
# expects: safe
# gone: sock
# kept: fine
perl -MIO::Socket::UNIX -e 'IO::Socket::UNIX->new(Local => "sock", Listen => 1) or die'
echo 1 > fine
