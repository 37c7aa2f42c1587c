"""The inside of pydevd, the debugger in debugpy: what is known of it, and what a hold needs there.

`known` names everything that is used and is not in debugpy's own interface, and looks whether it is as it is known. The
other modules take from there what they need: `frames` says which frames are shown, `watching` when nothing is watched,
`stops` lets a held thread wait inside the debugger, `requests` answers its client, `hooks` puts it all in.
"""
