"""Operations of a memory, declared once: doors to it are made from them."""
