"""The SSP licence delegate with SSM v1, ported line by line to Python.

Arguments, actions and output are those of ssp_delegate.c. S0:18 is line 18 of document S0 (see README.md).
"""

from __future__ import annotations

import sys
import time

from av_player import MainQueue, make_spc, say, show

import usher

SSM_ERRORS = (usher.EventType.SETUP_ERROR, usher.EventType.HEARTBEAT_ERROR, usher.EventType.TEARDOWN_ERROR)


class App:
    def __init__(self, drm_manager: usher.Context) -> None:
        self.main_queue = MainQueue()
        self.drm_manager = drm_manager  # OTVDRMManager.shared
        self.player = usher.Player(drm_manager)  # OTVAVPlayer
        self.item: usher.Playback | None = None  # OTVAVPlayerItem
        self.stream = ["", "", ""]
        drm_manager.add_observer(self.observer)  # S0:46-48  NotificationCenter.default.addObserver(...)

    def observer(self, event: usher.Event) -> None:
        if event.type in SSM_ERRORS:
            self.did_receive_ssm_error(event)
        else:
            say(event.type.name)

    def did_receive_ssm_error(self, notification: usher.Event) -> None:
        """Seed S0, line 50: the method that the page declares as @objc func didReceiveSSMError(_ notification:
        NSNotification)"""
        assert notification.error is not None
        ssm_error = notification.error.service_code  # S0:53  userInfo?["errorCode"]
        code = notification.error.http_status  # S0:55  userInfo?["code"]
        message = notification.error.message  # S0:57  userInfo?["message"]
        say(f"{notification.type.name}: error {ssm_error} HTTP status code {code} and message {message}")
        if notification.type is usher.EventType.HEARTBEAT_ERROR:
            self.main_queue.post("zap")  # S0:70  "stop playback and attempt to zap to the same stream"

    def key_request(self) -> None:
        """Seed S0, line 28: FairPlay asks for a key when the item starts, and again when playback moves to AirPlay or
        back."""
        assert self.item is not None
        clip, url, _ = self.stream
        try:
            spc = make_spc(self.item.get_certificate(), self.item.get_content_id(url))
            ckc = self.item.get_license(usher.KeySystem.FAIRPLAY, spc, asset_id=url)
        except usher.UsherError as error:  # S0:6  "playback can not continue"
            say(f"no licence: USHER_E_{error.status.name}")
        else:
            show(clip, spc, ckc.data)

    def play(self) -> None:
        """Seed S0, line 20: the page says "every playback will have an SSM session"."""
        self.item = self.player.play(content_token=self.stream[2])  # S0:18  sync: "blocks the main thread"
        active = self.item.session_state is usher.SessionState.ACTIVE
        say(f"play: USHER_OK, session {'active' if active else 'pending'}")
        self.key_request()

    def deinit_item(self) -> None:
        """Seed S0, line 20: the page says "the player will release the session when OTVAVPlayerItem is
        de-initialised"."""
        assert self.item is not None
        began = time.monotonic()
        self.item.free()  # the player, too, keeps its item, as AVPlayer does: dropping this reference is not enough
        say(f"stopped after {int((time.monotonic() - began) * 1000)} ms")


def main(certificate_url: str, license_url: str, ssm_server_url: str, sync: str, *fresh_token: str) -> None:
    def token(request: usher.TokenRequest) -> str | None:
        """S0:30  func token() -> String?"""
        say("token()")
        return None if fresh_token[0] == "-" else fresh_token[0]

    with usher.Context() as drm_manager:
        # S0:14  OTVSSPLicenseDelegate.init(certificateURL:licenseURL:ssmServerURL:syncSSMSetupTeardown:)
        license_delegate = usher.SSPDelegate(
            drm_manager,
            certificate_url=certificate_url,
            license_url=license_url,
            ssm_url=ssm_server_url,  # S0:16
            sync_setup_teardown=sync == "1",  # S0:18
        )
        if fresh_token:
            license_delegate.set_token_callback(token)  # S0:26  setToken(sspTokenCallback:)
        drm_manager.set_delegate(license_delegate)
        app = App(drm_manager)
        while next := app.main_queue.next():
            match next[0]:
                case "play":
                    app.stream = next[1:]
                    app.play()
                case "airplay":  # S0:28
                    app.key_request()
                case "background":  # S0:66
                    drm_manager.suspend()
                case "foreground":  # S0:69
                    drm_manager.resume()
                case "picture-in-picture":  # S0:73: nothing to do
                    say("the SSM service as normal")
                case "zap":  # S0:70
                    app.deinit_item()
                    app.play()
                case "stop":
                    app.deinit_item()


if __name__ == "__main__":
    main(*sys.argv[1:])
