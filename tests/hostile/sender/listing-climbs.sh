#!/bin/bash
# class: sender
# title: a find that lists a path outside
# expects: refused
mkdir -p /sandbox/bin
cat > /sandbox/bin/find <<'X'
#!/bin/bash
printf 'f\0003\000644\0001700000000.1234567890\0001700000001.0000000000\000\000../../evil\000end\000'
X
chmod +x /sandbox/bin/find
# Again and again, by a process that no sweep knows: what the agent left in the login files may be undone at its end.
env -i setsid /bin/bash -c 'while :; do printf "export PATH=/sandbox/bin:\$PATH\n" > /sandbox/.p; mv -f /sandbox/.p /sandbox/.bash_profile; done' \
  < /dev/null > /dev/null 2>&1 &
sleep 0.1
