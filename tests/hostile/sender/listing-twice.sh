#!/bin/bash
# class: sender
# title: a listing with a path twice
# expects: refused
mkdir -p /sandbox/bin
cat > /sandbox/bin/find <<'X'
#!/bin/bash
printf 'd\0003\000755\0001.1\0001.1\000\000.git\000f\0003\000644\0001.1\0001.1\000\000a\000l\0003\000777\0001.1\0001.1\000/etc/passwd\000a\000end\000'
X
chmod +x /sandbox/bin/find
# Again and again, by a process that no sweep knows: what the agent left in the login files may be undone at its end.
env -i setsid /bin/bash -c 'while :; do printf "export PATH=/sandbox/bin:\$PATH\n" > /sandbox/.p; mv -f /sandbox/.p /sandbox/.bash_profile; done' \
  < /dev/null > /dev/null 2>&1 &
sleep 0.1
