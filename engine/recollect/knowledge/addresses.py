"""Which network addresses a document may be fetched from: public ones."""

from __future__ import annotations

import ipaddress
from ipaddress import IPv4Address, IPv6Address

__all__ = ["is_public"]

# RFC 6052: an IPv4 address in the last 32 bits, which a gateway connects to. RFC 4291 has the deprecated form in ::/96.
_EMBEDDING = (ipaddress.IPv6Network("64:ff9b::/96"), ipaddress.IPv6Network("::/96"))


def is_public(address: str) -> bool:
    """Whether an address, as a resolver gives it, belongs to the public network.

    Not private, loopback, link-local, shared, multicast, reserved or unspecified, and holding none of these: IPv4 in
    IPv6 (mapped, compatible, 6to4, Teredo, NAT64) is judged by what is inside too.
    """
    parsed = ipaddress.ip_address(address.partition("%")[0])
    return all(_is_public(held) for held in _held(parsed))


def _is_public(address: IPv4Address | IPv6Address) -> bool:
    site_local = isinstance(address, IPv6Address) and address.is_site_local
    return address.is_global and not (
        site_local
        or address.is_private
        or address.is_loopback
        or address.is_link_local
        or address.is_multicast
        or address.is_reserved
        or address.is_unspecified
    )


def _held(address: IPv4Address | IPv6Address) -> list[IPv4Address | IPv6Address]:
    """The addresses that stand in this one, else the address itself."""
    if isinstance(address, IPv4Address):
        return [address]
    if address.ipv4_mapped is not None:
        return [address.ipv4_mapped]
    if any(address in network for network in _EMBEDDING) and int(address) > 1:
        return [IPv4Address(int(address) & 0xFFFFFFFF)]
    if address.sixtofour is not None:
        return [address, address.sixtofour]
    if address.teredo is not None:
        return [address, *address.teredo]
    return [address]
