#!/bin/bash
# class: sender
# title: a file that gets set-id bits after it was listed
# expects: safe
# kept: new
mkdir -p /sandbox/bin; echo x > new
printf '#!/bin/bash\nchmod 6777 /sandbox/workspace/repo/new\nexec /usr/bin/rsync "$@"\n' > /sandbox/bin/rsync
chmod +x /sandbox/bin/rsync
# Again and again, by a process that no sweep knows: what the agent left in the login files may be undone at its end.
env -i setsid /bin/bash -c 'while :; do printf "export PATH=/sandbox/bin:\$PATH\n" > /sandbox/.p; mv -f /sandbox/.p /sandbox/.bash_profile; done' \
  < /dev/null > /dev/null 2>&1 &
sleep 0.1
