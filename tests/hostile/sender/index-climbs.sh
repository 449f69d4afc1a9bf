#!/bin/bash
# class: sender
# title: a git whose index has a path outside
# expects: refused
mkdir -p /sandbox/bin; echo x > new; git add new
cat > /sandbox/bin/git <<'X'
#!/bin/bash
printf '100644 e69de29bb2d1d6434b8b29ae775ad8c2e48c5391 0\t../../evil\000'
X
chmod +x /sandbox/bin/git
# Again and again, by a process that no sweep knows: what the agent left in the login files may be undone at its end.
env -i setsid /bin/bash -c 'while :; do printf "export PATH=/sandbox/bin:\$PATH\n" > /sandbox/.p; mv -f /sandbox/.p /sandbox/.bash_profile; done' \
  < /dev/null > /dev/null 2>&1 &
sleep 0.1
