"""A consumer of the checks of keyed delivery whose client blocks: a thread polls it."""

import threading


def work(client, place, handle_some):
    """Calls `handle_some(client, place, leaving)` again and again; the function it returns ends that."""
    leaving = threading.Event()

    def run():
        try:
            while not leaving.is_set():
                handle_some(client, place, leaving)
            client.close()
        except Exception as error:  # the check looks at it
            place.fail(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()

    def leave():
        leaving.set()
        thread.join(30)

    return leave
