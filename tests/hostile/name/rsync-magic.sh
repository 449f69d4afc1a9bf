#!/bin/bash
# class: name
# title: names that rsync could read as something else
# expects: safe
# kept: fine
mkdir './x:y'; echo 1 > 'x:y/z'; echo 1 > '::module'; echo 1 > 'host:path'; echo 1 > ';comment'; echo 1 > '#comment'; echo 1 > '- *'; mkdir ./-; echo 1 > '-/x'; echo 1 > fine
