/*
 * fairplay_loader.cpp - the FairPlay resource loader of the seed, ported line by line to C++. Arguments and output are
 * those of fairplay_loader.c.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <cstdio>
#include <string>
#include <usher/usher.hpp>

// getMyAssetIdentifierFromURL(url): the packager of this example writes skd://<content id>, or puts the content id
// after a semicolon.
static std::string my_asset_identifier(const std::string &url) {
  const auto semicolon = url.rfind(';');
  return url.substr(semicolon == std::string::npos ? 6 : semicolon + 1);
}

static std::string text(usher::bytes_view bytes) { return std::string(bytes.begin(), bytes.end()); }
static usher::bytes_view bytes(const std::string &text) {
  return usher::bytes_view(reinterpret_cast<const uint8_t *>(text.data()), text.size());
}

int main(int argc, char **argv) {
  if (argc < 4) return 2;
  const int use_case = std::stoi(argv[1]);
  const std::string server = argv[2], url = argv[3];
  try {
    usher::context context;
    context.add_observer([](const usher::event &event) { std::printf("event %s\n", event.name()); });

    usher::loader_options options;
    // The application decides to which server the licence request goes, and how to get the ExpressPlay token.
    options.server = [&](usher::server_request request) {
      const std::string asset_id = my_asset_identifier(text(request.url()));
      if (use_case == 1) { // strUrl = getOnPremiseServerUrl(strUrl, assetId)
        request.answer(server, "X-Asset: on-premise");
      } else if (use_case == 2) { // strUrl = getExpressPlayTokenUrlFromEntilementServer(strUrl, assetId, true, &error)
        usher::entitlement wanted;
        wanted.url = server;
        wanted.content_id = bytes(asset_id);
        wanted.token_kind = request.token_kind(); // bEnforceDeviceID: false registers the device, true needs it
        request.ask_entitlement(wanted);
      } else { // strUrl is already the ExpressPlay token URL: skd:// becomes http(s)://
        request.use_builtin();
      }
    };
    // Makes the SPC: [loadingRequest streamingContentKeyRequestDataForApp:appCert contentIdentifier:assetId ...], with
    // a test CDM.
    options.spc = [](usher::spc_request request) {
      std::string spc(72, '\0');
      spc.replace(0, 8, std::string("\0\0\0\1USPC", 8));
      spc.replace(40, 23, "sixteen bytes nrthis tv");
      request.answer(bytes(spc + my_asset_identifier(text(request.url()))));
    };
    options.content_id_rule = usher::content_id_rule::host;
    options.allowed_hosts = "127.0.0.1:*";
    options.derived_scheme = "http";
    if (use_case == 2) {
      options.device_binding = true;
      options.customer_cookie = "household-1";
      options.device_registered = argc > 4;
    }
    if (use_case == 3) options.route = usher::route::token_url;
    // [[PTDefaultMediaPlayerClientFactory defaultFactory] registerPTAVAssetResourceLoader:resourceLoader]
    const auto loader = context.add_loader(std::move(options));
    const auto player = context.new_player();
    const auto playback = player.play({});
    const auto ckc = playback.get_resource(bytes(url));
    std::printf("CKC %zu\n", ckc.data().size()); // finishLoadingWithResponse:
    context.close();
  } catch (const usher::error &error) { // finishLoadingWithError:
    std::printf("error %s: %s\n", usher::status_name(error.status()), error.what());
    return 1;
  }
}
